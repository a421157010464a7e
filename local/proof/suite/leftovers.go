package suite

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// checkLeftovers waits until all tasks have ended and every machine and upload is gone. The
// bucket of accepted outputs may contain one object per completed task, and the results of
// children of any run.
func (c *Case) checkLeftovers() {
	if err := c.Target.setFaults(c.T.Context(), plan{}); err != nil {
		c.T.Fatal(err)
	}
	delivers := map[string]bool{}
	for _, task := range c.tasks.all {
		if task != "" { // empty after a failed test
			delivers[task] = c.End(task).Status == contract.StatusSuccess || c.task(task).Children != nil
		}
	}
	ctx, cancel := context.WithTimeout(c.T.Context(), max(c.Timeout, time.Minute))
	defer cancel()
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		found, err := c.leftovers(ctx, delivers)
		if err == nil && len(found) == 0 {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			c.T.Fatalf("got leftovers %v (%v), want none", found, err)
		}
	}
}

func (c *Case) leftovers(ctx context.Context, delivers map[string]bool) (found []string, err error) {
	if _, _, lacks := c.Target.lacks([]Capability{SeeMachines}); !lacks {
		live, err := c.Target.Machines.Live(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range live {
			found = append(found, "machine "+m.Name+" "+m.State)
		}
	}
	if _, _, lacks := c.Target.lacks([]Capability{SeeObjects}); lacks {
		return found, nil
	}
	buckets := c.Target.Buckets
	uploaded, err := buckets.Objects(ctx, buckets.Uploads)
	if err != nil {
		return nil, err
	}
	kept, err := buckets.Objects(ctx, buckets.Accepted)
	if err != nil {
		return nil, err
	}
	outside.Logs(kept) // logs are kept as long as their task
	counts := map[string]int{}
	for key := range kept {
		if task := ofTask(key, delivers); task != "" {
			counts[task]++
			if !delivers[task] || counts[task] > 1 {
				found = append(found, "kept "+key)
			}
		}
	}
	for key := range uploaded {
		if ofTask(key, delivers) != "" {
			found = append(found, "upload "+key)
		}
	}
	slices.Sort(found)
	return found, nil
}

// ofTask returns the task in ours to which the object with the key belongs, or "".
func ofTask(key string, ours map[string]bool) string {
	for part := range strings.SplitSeq(key, "/") {
		if _, mine := ours[part]; mine {
			return part
		}
	}
	return ""
}
