package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) events() *cobra.Command {
	c := &cobra.Command{
		Use:   "events RUN",
		Short: "Show the events of a run, or the tenant's stream",
		Long: `Show the events of a run, in order and numbered without gaps. A fault is written
out once; the following events of the same fault have its code. The subcommands show
and save the stream of all events of the tenant.

Events job.* are about runs, and events schedule.* about stored jobs. Consumers rely on
these names, which the envelope of events fixes.`,
		Example:           `  sortie events export_mods_1704857234567_a3f8c2d1`,
		ValidArgsFunction: a.runIDs(),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			events, err := c.Events(ctx, args[0], 0)
			if err != nil {
				return err
			}
			t := display.NewTable("SEQ", "TIME", "EVENT", "STATE", "ATTEMPT", "")
			var last contract.Fault
			for _, e := range events {
				about := e.Message
				switch {
				case e.Fault == nil:
					last = contract.Fault{}
				case *e.Fault == last:
					about = last.Code
				default:
					about, last = fmt.Sprintf("%s: %s", e.Fault.Code, e.Fault.Message), *e.Fault
				}
				t.Row(fmt.Sprint(e.Seq), a.Instant(e.OccurredAt), e.Type, e.State, fmt.Sprint(e.Attempt), about)
			}
			return a.Table(contract.TaskEvents{Events: events}, t)
		}),
	}
	for _, stream := range []*cobra.Command{a.eventsTail(), a.eventsList(), a.eventsExport(), a.eventsReplay()} {
		a.ServerFlags(stream)
		c.AddCommand(stream)
	}
	c.AddCommand(a.eventsVerify())
	return c
}
