// Package job has the definitions of jobs: it reads and checks them, says what each of
// their runs does, and computes when they fire. It is pure: time is an argument.
package job
