// Package sensor has the items that start runs of jobs: events, messages of a queue and objects of
// a bucket, each as a CloudEvent 1.0.
//
// It decides which items a job takes and which run is that of an item. It has no I/O and no clock.
package sensor
