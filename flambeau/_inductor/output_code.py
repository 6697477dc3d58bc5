"""What the compiler gives: it is not there."""
from flambeau._dynamo._absent import COMPILER, absent_class

OutputCode = absent_class(__name__, "OutputCode", COMPILER)
CompiledFxGraph = absent_class(__name__, "CompiledFxGraph", COMPILER, OutputCode)
CompiledAOTI = absent_class(__name__, "CompiledAOTI", COMPILER, OutputCode)
RegionalOutputCode = absent_class(__name__, "RegionalOutputCode", COMPILER, OutputCode)
MockFXGraphCacheOutput = absent_class(__name__, "MockFXGraphCacheOutput", COMPILER, OutputCode)
__all__ = ["CompiledAOTI", "CompiledFxGraph", "OutputCode", "RegionalOutputCode"]
