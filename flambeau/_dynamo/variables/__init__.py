"""What stands for values while PyTorch's tracer follows Python's frames: there is no such tracer,
so the classes have no instances."""
from flambeau._dynamo._absent import TRACER, absent_class
from flambeau._support.lazy.modules import lazy_package

VariableTracer = absent_class(__name__, "VariableTracer", TRACER)
_NAMES = """
    AutogradFunctionVariable BaseListVariable BuiltinVariable BuiltinMethodVariable
    ConstDictVariable ConstantVariable ContextWrappingVariable DefaultDictVariable DequeVariable
    DeterministicAlgorithmsVariable DictKeysVariable EnumVariable FakeItemVariable
    FunctoolsPartialVariable GetAttrVariable GradModeVariable IteratorVariable LambdaVariable
    LazyVariableTracer ListIteratorVariable ListVariable MethodWrapperVariable NNModuleVariable
    NamedTupleVariable NestedUserFunctionVariable NewGlobalVariable NumpyNdarrayVariable
    NumpyVariable OptimizerVariable PlacementVariable PythonModuleVariable RangeVariable
    RemovableHandleVariable RepeatIteratorVariable SDPAParamsVariable SetVariable
    SkipFunctionVariable SliceVariable StreamContextVariable StreamVariable StringFormatVariable
    SuperVariable SymNodeVariable TensorVariable TorchCtxManagerClassVariable
    TorchInGraphFunctionVariable TorchVersionVariable TupleVariable TypingVariable
    UnknownVariable UnspecializedNNModuleVariable UnspecializedPythonVariable
    UntypedStorageVariable UserDefinedClassVariable UserDefinedDictVariable
    UserDefinedObjectVariable UserFunctionVariable UserMethodVariable WithExitFunctionVariable
""".split()
globals().update({name: absent_class(__name__, name, TRACER, VariableTracer) for name in _NAMES})
__getattr__ = lazy_package(__name__)
__all__ = ["VariableTracer", *_NAMES]
