package operate

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
)

func (a *Operator) redrive() *cobra.Command {
	var flags stageFlags
	c := &cobra.Command{
		Use:   "redrive",
		Short: "Publish the events that a stage has set aside",
		Long: `Make the relay publish the events that it has set aside: those that the bus
refused, that could not be read, or that were not published for nearly a day. The
stage does this by itself each hour. Events keep their ids, by which subscribers
find those that they have received before.

Events that cannot be published stay set aside, and the command fails; the log of
the relay says why.`,
		Example: "  sortie redrive --stage prod",
	}
	flags.add(c)
	c.RunE = cli.Does(func(ctx context.Context, _ []string) error {
		deployed, _, err := a.find(ctx, flags, "")
		if err != nil {
			return err
		}
		done, err := deployed.Redrive(ctx)
		if err != nil {
			return err
		}
		if a.JSON {
			err = a.Print(done)
		} else {
			a.Note("Published the events of %d changes.", done.Redriven)
		}
		if done.Left > 0 {
			return fmt.Errorf("the events of %d changes could not be published", done.Left)
		}
		return err
	})
	return c
}
