package command

import (
	"context"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
)

func (a *app) usage() *cobra.Command {
	var from, to, by string
	var sheet bool
	c := &cobra.Command{
		Use: "usage", Short: "Show what inference runs have used",
		Long: `Show what inference runs have used in a range of UTC days: runs, tokens, time and cost. Usage is
kept for 400 days.`,
		Example: "  sortie usage --by day,key --from 2026-11-01 --to 2026-11-30 --csv > november.csv",
	}
	flags := c.Flags()
	flags.StringVar(&from, "from", "", "first day; default 29 days before the last one")
	flags.StringVar(&to, "to", "", "last day; default today")
	flags.StringVar(&by, "by", "model", "what has a line of its own: some of day, model, key and session")
	flags.BoolVar(&sheet, "csv", false, "print CSV")
	c.RunE = a.WithClient(func(ctx context.Context, server *client.Client, _ []string) error {
		query := url.Values{"by": {by}}
		for name, day := range map[string]string{"from": from, "to": to} {
			if day != "" {
				query.Set(name, day)
			}
		}
		if sheet {
			text, err := server.UsageCSV(ctx, query)
			if err == nil {
				_, err = a.Stdout.Write(text)
			}
			return err
		}
		u, err := server.Usage(ctx, query)
		if err != nil {
			return err
		}
		return a.Table(u, display.Usage(u))
	})
	return c
}
