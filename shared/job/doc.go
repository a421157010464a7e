// Package job has the definitions of jobs, and computes when jobs fire. It is pure:
// time is an argument. Nothing runs them yet.
package job
