"""An audit of the libraries in a wheel: which instructions they have, and what the label declares.

The way of the data: `wheel_audit` (members of the wheel) → `elf_library` and `fatbin` (sections) →
`disassembly` and `extensions` (instructions) → `audit_findings` (compared with the label).
"""
