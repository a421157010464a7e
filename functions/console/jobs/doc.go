// Package jobs has the pages of jobs: the list, a job with its runs and its form, the document
// with its versions, and the calendar of firings.
package jobs
