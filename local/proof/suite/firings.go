package suite

import (
	"slices"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// firingReplaces checks overflow with keep_newest for a job that fires while a run holds the
// only slot of its key: the queue of the key has only the newest run.
func firingReplaces(c *Case) {
	path, id := c.pool("fired", document{"limit": 0})
	with := document{"pool": id, "concurrencyKey": "fired-" + c.round, "concurrency": document{"limit": 1, "queueLimit": 1, "overflow": "keep_newest"}}
	first, release := c.holder(with)
	d := everyInterval()
	for name, value := range with {
		d = d.with(name, value)
	}
	job := c.job("fired", d)
	lost := c.runsThat(job, 1, func(r contract.Task) bool { return r.Skipped })[0]
	c.pause(job)
	if lost.State != "Completed" || lost.Machine != nil || lost.Overflowed == nil || lost.Overflowed.Rule != "keep_newest" || lost.Overflowed.By == "" {
		c.T.Errorf("got %+v with %+v, want a run that was skipped for a newer one", lost, lost.Overflowed)
	}
	release()
	if one := c.ended(first); one.State != "Completed" {
		c.T.Errorf("got %s, want the holder Completed", one.State)
	}
	c.eventually("end of all runs", func() bool {
		return !slices.ContainsFunc(c.runs(job), func(r contract.Task) bool { return !hasEnded(r) })
	})
	c.removePool(path)
}
