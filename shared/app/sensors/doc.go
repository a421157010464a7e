// Package sensors starts runs of jobs for items: the CloudEvents that clients send.
//
// The id of a run follows from the job, the source and the id of its item. So an item has one run as
// long as the record of the run is kept.
package sensors
