"""Packages: one file with objects and the code that they need.

Opening what is in a package **runs its code**, by design: do so only if you trust who made it.
"""
from __future__ import annotations

from flambeau.package.file_structure_representation import Directory
from flambeau.package.glob_group import GlobGroup
from flambeau.package.importer import *
from flambeau.package.importer import sys_importer
from flambeau.package.package_exporter import EmptyMatchError, PackageExporter, PackagingError
from flambeau.package.package_importer import PackageImporter, is_from_package

__all__ = ["Directory", "EmptyMatchError", "GlobGroup", "Importer", "ObjMismatchError",
           "ObjNotFoundError", "OrderedImporter", "PackageExporter", "PackageImporter",
           "PackagingError", "is_from_package", "sys_importer"]
