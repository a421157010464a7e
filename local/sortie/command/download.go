package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// target is where an output is saved.
type target struct {
	// path is a file, a folder, or "-" for standard output.
	path string
	// force allows the replacement of a file with other content.
	force bool
}

func (t *target) flags(c *cobra.Command) {
	c.Flags().StringVarP(&t.path, "output", "o", "", "file or folder to save to; - is standard output")
	c.Flags().BoolVar(&t.force, "force", false, "replace an existing file with other content")
}

func (a *app) download() *cobra.Command {
	var to target
	c := &cobra.Command{
		Use:   "download RUN",
		Short: "Save the output of a run",
		Long: `Save the output of a run to a file. Its name is the server's with the format
before the extension, such as PI-collection.mods.xml, unless -o names a file. The
file appears complete or not at all. An existing file with other content is
replaced only with --force. A broken connection is made again. Standard output
has the file's path. A run with children has an output also if it failed.

After a download the server may delete the output earlier; the command says when.`,
		Example: `  sortie download export_mods_1704857234567_a3f8c2d1
  sortie download export_mods_1704857234567_a3f8c2d1 -o exports/
  sortie download export_mods_1704857234567_a3f8c2d1 -o - | gzip > out.xml.gz`,
		ValidArgsFunction: a.runIDs(),
	}
	to.flags(c)
	c.RunE = cli.Does(func(ctx context.Context, args []string) error {
		c, err := a.Client()
		if err != nil {
			return err
		}
		status, err := c.Status(ctx, args[0], 0)
		switch {
		case err != nil:
			return err
		case status.Status == contract.StatusProcessing:
			return a.StillRunning(status.TaskID)
		case status.Status != contract.StatusSuccess:
			ended := a.RunEnded(status)
			if status, err = withResults(ctx, c, status); err != nil || status.OutputKey == "" {
				return ended
			}
			a.Note("%s", ended)
		case status.OutputKey == "":
			return cli.Advised{Err: fmt.Errorf("the run %s has no output", status.TaskID), Code: cli.ExitGone, TaskID: status.TaskID}
		}
		follow := a.newFollower(c)
		defer follow.close()
		return a.saved(ctx, follow, status, to)
	})
	return c
}

// withResults returns the status of a run that has not succeeded with the output of its children, if
// it has any.
func withResults(ctx context.Context, c *client.Client, status contract.Status) (contract.Status, error) {
	task, err := c.Task(ctx, status.TaskID)
	if err == nil && task.Children != nil && task.Output != nil && task.Output.DeletedAt.IsZero() {
		status.OutputKey, status.OutputFileSize = task.Output.Key, &task.Output.Size
	}
	return status, err
}

// saved downloads the output and prints where it is.
func (a *app) saved(ctx context.Context, follow *follower, status contract.Status, to target) error {
	file, size, err := follow.save(ctx, status, to)
	follow.close()
	if err != nil {
		return err
	}
	if file != "" {
		a.noteExpiry(ctx, follow, status)
	}
	switch {
	case file == "-":
		return nil
	case a.JSON:
		return a.Print(exported{status, file})
	case file == "":
		return nil
	}
	a.Note("%s", display.Export(status, size))
	return a.Say("%s\n", file)
}

// noteExpiry prints a note if the download has shortened the output's retention.
func (a *app) noteExpiry(ctx context.Context, follow *follower, before contract.Status) {
	after, err := follow.client.Status(ctx, before.TaskID, 0)
	if err != nil || !after.OutputExpiresAt.Before(before.OutputExpiresAt) || after.OutputExpiresAt.IsZero() {
		return
	}
	a.Note("The server now keeps the output until %s (before the download: %s).",
		a.Moment(after.OutputExpiresAt), a.Moment(before.OutputExpiresAt))
}
