// Package job defines jobs. It parses and validates their definitions, returns what each of
// their runs does, and computes when they fire. It is pure: time is an argument.
package job
