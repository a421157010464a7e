package command

import (
	"context"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) eventsReplay() *cobra.Command {
	in, key, limit, f := contract.ReplayRequest{}, "", 0, eventFlags{}
	c := &cobra.Command{
		Use: "replay", Short: "Send events again, to a webhook or to the bus",
		Long: `Send the events of a range once more, to a webhook or to the bus. They have the same
ids, and their place in the replay. The ends of the range are cursors or times, such as
2026-11-21T09:00:00Z. The token needs the scope orch:backfill.

One replay has at most 10,000 events. The cursor at which the next one begins is on
standard error, and in the JSON. With --key, the command can be repeated: it shows the
progress of the same replay.`,
		Example: `  sortie events replay --from 2026-11-21T09:00:00Z --type job.failed --webhook whk_01KJM74XY0H3ZZ5T605S8SXKKV
  sortie events replay --from earliest --bus --key after-the-outage`,
	}
	f.addFilter(c)
	flags := c.Flags()
	flags.StringVar(&in.From, "from", "", "begin behind this cursor, at this time, or at earliest (required)")
	flags.StringVar(&in.To, "to", "latest", "end at this cursor, before this time, or at latest")
	flags.StringVar(&in.Target.WebhookID, "webhook", "", "send to this webhook")
	flags.BoolVar(&in.Target.Bus, "bus", false, "send to the bus")
	flags.IntVar(&limit, "limit", 10_000, "number of events, 1 to 10000")
	flags.StringVar(&key, "key", "", "idempotency key; a random one by default")
	c.RunE = a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
		if in.From == "" {
			return cli.Wrong("missing --from, want a cursor, a time or earliest")
		}
		if (in.Target.WebhookID != "") == in.Target.Bus {
			return cli.Wrong("want --webhook or --bus")
		}
		in.Filter = contract.EventFilter{
			Types: f.types, ProjectID: f.filter.ProjectID, JobID: f.filter.JobID, TaskID: f.filter.TaskID, ParentRunID: f.filter.ParentRunID, Label: f.label,
		}
		if in.Limit = &limit; key == "" {
			key = uuid.NewString()
		}
		r, err := c.Replay(ctx, in, key)
		if err != nil {
			return err
		}
		if r.Next != "" {
			a.Note("the range has further events; continue with --from %s", r.Next)
		}
		return a.Result(r, "%s: %d of %d events are sent\n", r.ID, r.Sent, r.Events)
	})
	return c
}
