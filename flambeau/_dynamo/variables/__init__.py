"""What stands for values while PyTorch's tracer follows Python's frames: there is no such tracer,
so the classes have no instances."""
from flambeau._dynamo._absent import TRACER, absent_class
from flambeau._dynamo.variables.base import VariableTracker
from flambeau._support.lazy.modules import lazy_package

_NAMES = """
    AutogradFunctionVariable BaseListVariable BuiltinVariable ConstDictVariable ConstantVariable
    ContextWrappingVariable DefaultDictVariable DequeVariable FakeItemVariable
    FunctoolsPartialVariable GetAttrVariable GradModeVariable IteratorVariable LambdaVariable
    LazyVariableTracker ListIteratorVariable ListVariable MethodWrapperVariable NNModuleVariable
    NamedTupleVariable NestedUserFunctionVariable NewGlobalVariable NumpyNdarrayVariable
    NumpyVariable OptimizerVariable PythonModuleVariable RangeVariable RemovableHandleVariable
    RepeatIteratorVariable SDPAParamsVariable SetVariable SkipFunctionVariable SliceVariable
    StreamContextVariable StreamVariable StringFormatVariable SuperVariable SymNodeVariable
    TensorVariable TorchCtxManagerClassVariable TorchInGraphFunctionVariable TupleVariable
    TypingVariable UnknownVariable UnspecializedNNModuleVariable UnspecializedPythonVariable
    UntypedStorageVariable UserDefinedClassVariable UserDefinedDictVariable
    UserDefinedObjectVariable UserFunctionVariable UserMethodVariable WithExitFunctionVariable
""".split()
globals().update({name: absent_class(__name__, name, TRACER, VariableTracker) for name in _NAMES})
__getattr__ = lazy_package(__name__)
__all__ = ["VariableTracker", *_NAMES]
