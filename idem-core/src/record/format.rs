//! The bytes of a record, version 1: one packed string, read and written also by the Lua scripts.
