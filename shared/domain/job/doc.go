// Package job defines jobs. It parses and validates their definitions, returns what each of
// their runs does, and computes when they fire. It is pure: time is an argument.
//
// A field of a job is in definition.go. Its check is in validate.go, or in validate_schedule.go
// if it is about time, and adds a problem with the path of the field, see problems.go. What the
// field does to a run is in work.go; what it does to firings is in fire.go and simulate.go.
package job
