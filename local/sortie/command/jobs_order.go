package command

import (
	"context"
	"slices"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

// inOrder returns the files with each job after those that it comes after, and otherwise in their
// order. The files have no circle.
func inOrder(files []jobfile.File) (sorted []jobfile.File) {
	for len(files) > 0 {
		ready := slices.IndexFunc(files, func(f jobfile.File) bool {
			return !slices.ContainsFunc(f.Definition.After, func(a job.Dependency) bool {
				return slices.ContainsFunc(files, func(other jobfile.File) bool { return other.Definition.ID == a.Job })
			})
		})
		ready = max(ready, 0)
		sorted, files = append(sorted, files[ready]), slices.Delete(slices.Clone(files), ready, ready+1)
	}
	return sorted
}

// deleteJobs deletes jobs, each after those that come after it. It returns the deleted ones, also
// with an error.
func deleteJobs(ctx context.Context, c *client.Client, ids []string) (deleted []string, err error) {
	for len(ids) > 0 {
		var left []string
		for _, id := range ids {
			failed := c.DeleteJob(ctx, id)
			if failed == nil {
				deleted = append(deleted, id)
				continue
			}
			left, err = append(left, id), failed
		}
		if len(left) == len(ids) {
			return deleted, err
		}
		ids = left
	}
	return deleted, nil
}
