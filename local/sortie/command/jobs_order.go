package command

import (
	"context"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/jobfile"
	"github.com/sortie-dev/sortie/shared/domain/job"
)

// inOrder returns the files with each job after those that it comes after, and otherwise in their
// order. It refuses jobs that come after each other in a circle.
func inOrder(files []jobfile.File) (sorted []jobfile.File, err error) {
	for len(files) > 0 {
		ready := slices.IndexFunc(files, func(f jobfile.File) bool {
			return !slices.ContainsFunc(f.Definition.After, func(a job.Dependency) bool {
				return slices.ContainsFunc(files, func(other jobfile.File) bool { return other.Definition.ID == a.Job })
			})
		})
		if ready < 0 {
			var ids []string
			for _, f := range files {
				ids = append(ids, f.Definition.ID)
			}
			return nil, cli.Wrong("after: among the jobs %s some come after each other in a circle; remove one of the dependencies", strings.Join(ids, ", "))
		}
		sorted, files = append(sorted, files[ready]), slices.Delete(slices.Clone(files), ready, ready+1)
	}
	return sorted, nil
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
