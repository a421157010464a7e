// Package job has the records of stored jobs, and computes when they fire. It is
// pure: time is an argument.
package job
