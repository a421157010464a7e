package command

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func (a *app) sessions() *cobra.Command {
	return a.Resources("sessions", "Look at the sessions of inference runs, and close them",
		&cobra.Command{
			Use: "show SESSION", Short: "Show what a session has left", Example: "  sortie sessions show talk-1",
			RunE: cli.Printed(a.App, cli.ByID((*client.Client).Session), func(s contract.Session) error {
				return a.Result(s, "%s\n", display.Session(s))
			}),
		},
		a.Removal(&cobra.Command{
			Use: "delete SESSION", Short: "Close a session", Example: "  sortie sessions delete talk-1",
			Long: "Close a session. Its runs end as they would; new ones are refused for a day.",
		}, "closed", (*client.Client).DeleteSession))
}

const scopes = `A scope is "tenant", "project:ID" or "session:ID"; "key" shows the budget of the own token.`

func (a *app) budgets() *cobra.Command {
	return a.Resources("budgets", "Look at the budgets of inference runs, and limit them",
		&cobra.Command{
			Use: "show SCOPE", Short: "Show the budget of a scope", Long: "Show the limit of a budget and its use. " + scopes,
			Example: "  sortie budgets show project:reports",
			RunE:    cli.Printed(a.App, cli.ByID((*client.Client).Budget), func(b contract.Budget) error { return a.Table(b, display.Budget(b)) }),
		}, a.budgetsSet())
}

func (a *app) budgetsSet() *cobra.Command {
	var turns, tokens int64
	var within time.Duration
	var dollars float64
	c := &cobra.Command{
		Use: "set SCOPE", Short: "Limit the budget of a scope",
		Long: `Limit what the runs of a scope may use. A part without a flag keeps its limit. Active runs
keep what they hold. ` + scopes,
		Example: "  sortie budgets set project:reports --tokens 1000000 --cost 20",
	}
	flags := c.Flags()
	flags.Int64Var(&turns, "turns", 0, "number of runs")
	flags.Int64Var(&tokens, "tokens", 0, "number of tokens")
	flags.DurationVar(&within, "time", 0, "time of engines")
	flags.Float64Var(&dollars, "cost", 0, "cost in dollars")
	c.RunE = a.WithClient(func(ctx context.Context, server *client.Client, args []string) error {
		if !flags.Changed("turns") && !flags.Changed("tokens") && !flags.Changed("time") && !flags.Changed("cost") {
			return cli.Wrong("no limit, want at least one of --turns, --tokens, --time and --cost")
		}
		is, err := server.Budget(ctx, args[0])
		if p, ok := errors.AsType[*client.Problem](err); ok && p.Status == http.StatusNotFound && strings.HasPrefix(args[0], "session:") {
			err = nil // a session has no budget before its first task
		}
		if err != nil {
			return err
		}
		limit := is.Limit
		for name, part := range map[string]struct {
			to    **int64
			value int64
		}{
			"turns": {&limit.Turns, turns}, "tokens": {&limit.Tokens, tokens}, "time": {&limit.TimeMS, within.Milliseconds()},
			"cost": {&limit.CostNano, int64(math.Round(dollars * 1e9))},
		} {
			if flags.Changed(name) {
				*part.to = &part.value
			}
		}
		b, err := server.PutBudget(ctx, args[0], limit)
		if err != nil {
			return err
		}
		return a.Table(b, display.Budget(b))
	})
	return c
}
