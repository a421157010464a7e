// Package job computes when jobs fire. It is pure: time is an argument. Jobs
// themselves are not implemented yet.
package job
