"""Switches of symbolic sizes."""
import sys

from flambeau.utils._config_module import install_config_module

use_duck_shape = True                   # equal sizes of examples are one symbol
translation_validation = False
translation_validation_timeout = 600000
translation_validation_no_bisect = False
check_shape_env_recorded_events = False
extended_debug_guard_added = None
extended_debug_create_symbol = None
extended_debug_cpp = False
extended_debug_current_loc = True
print_specializations = False
inject_EVALUATE_EXPR_flip_equality_TESTING_ONLY = False
validate_shape_env_version_key = False
symbol_guard_limit_before_specialize = None
meta_nonzero_assume_all_nonzero = False
backed_size_oblivious = False
aggressive_guard_free_semantics = 0
no_data_dependent_graph_break = False
skip_dtype_check_in_meta_registrations = False

install_config_module(sys.modules[__name__])
