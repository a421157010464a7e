package command

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/importer"
)

func (a *app) jobsExport() *cobra.Command {
	page := client.Page{Limit: 1000}
	var folder string
	var force bool
	c := &cobra.Command{
		Use: "export", Short: "Write all jobs as job files",
		Long: `Write the stored jobs as job files, to standard output or to a folder. "sortie jobs
apply" reads them again. Secrets are names, so the files have no values of them.`,
		Example: "  sortie jobs export > jobs.yaml\n  sortie jobs export -l team=data --out jobs",
		Args:    cobra.NoArgs,
	}
	selectorFlag(c.Flags(), &page.Filter.Label)
	c.Flags().StringVar(&folder, "out", "", "folder of the files; by default standard output")
	c.Flags().BoolVar(&force, "force", false, "replace existing files of --out")
	c.RunE = a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
		list, err := allJobs(ctx, c, page)
		if err != nil {
			return err
		}
		jobs := []importer.Job{}
		for _, summary := range list.Jobs {
			j, err := c.Job(ctx, summary.ID)
			if client.Gone(err) { // deleted meanwhile
				continue
			}
			if err != nil {
				return err
			}
			jobs = append(jobs, importer.Job{Definition: j.Definition})
		}
		return a.writeImported(jobs, folder, force)
	})
	return c
}
