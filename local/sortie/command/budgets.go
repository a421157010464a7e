package command

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/sortie/display"
	"github.com/sortie-dev/sortie/shared/contract"
)

func (a *app) sessions() *cobra.Command {
	return a.resources("sessions", "Look at the sessions of inference tasks, and close them",
		&cobra.Command{
			Use: "show SESSION", Short: "Show what a session has left", Example: "  sortie sessions show talk-1",
			RunE: printed(a, byID((*client.Client).Session), func(s contract.Session) error {
				return a.result(s, "%s: %s, expires in %s without a further task\nleft: %s\n", s.SessionID, turnsOf(s), milliseconds(s.TTLMS), leftOf(s))
			}),
		},
		a.removal(&cobra.Command{
			Use: "delete SESSION", Short: "Close a session", Example: "  sortie sessions delete talk-1",
			Long: "Close a session. Its tasks end as they would; new ones are refused for a day.",
		}, "closed", (*client.Client).DeleteSession))
}

// turnsOf returns the turns of a session for people.
func turnsOf(s contract.Session) string {
	if s.TurnsRemaining == nil {
		return fmt.Sprintf("%d turns", s.Turns)
	}
	return fmt.Sprintf("%d of %d turns", s.Turns, s.Turns+*s.TurnsRemaining)
}

// leftOf returns what remains of the other limits of a session for people.
func leftOf(s contract.Session) string {
	var left []string
	if s.TokensRemaining != nil {
		left = append(left, fmt.Sprintf("%d tokens", *s.TokensRemaining))
	}
	if s.TimeRemainingMS != nil {
		left = append(left, milliseconds(*s.TimeRemainingMS))
	}
	if s.CostRemaining != nil {
		left = append(left, "$"+strconv.FormatFloat(*s.CostRemaining, 'f', -1, 64))
	}
	if left == nil {
		return "any number of tokens, no limit"
	}
	return strings.Join(left, ", ")
}

// milliseconds returns a duration for people.
func milliseconds(n int64) string {
	const most = int64(math.MaxInt64 / time.Millisecond)
	return (time.Duration(min(n, most)) * time.Millisecond).String()
}

const scopes = `A scope is "tenant", "project:ID" or "session:ID".`

func (a *app) budgets() *cobra.Command {
	return a.resources("budgets", "Look at the budgets of inference tasks, and limit them",
		&cobra.Command{
			Use: "show SCOPE", Short: "Show the budget of a scope", Long: "Show the limit of a budget and its use. " + scopes,
			Example: "  sortie budgets show project:reports",
			RunE:    printed(a, byID((*client.Client).Budget), a.showBudget),
		}, a.budgetsSet())
}

func (a *app) budgetsSet() *cobra.Command {
	var turns, tokens int64
	var within time.Duration
	var dollars float64
	c := &cobra.Command{
		Use: "set SCOPE", Short: "Limit the budget of a scope",
		Long: `Limit what the tasks of a scope may use. A part without a flag keeps its limit. Tasks that
run keep what they hold. ` + scopes,
		Example: "  sortie budgets set project:reports --tokens 1000000 --cost 20",
	}
	flags := c.Flags()
	flags.Int64Var(&turns, "turns", 0, "number of tasks")
	flags.Int64Var(&tokens, "tokens", 0, "number of tokens")
	flags.DurationVar(&within, "time", 0, "time of engines")
	flags.Float64Var(&dollars, "cost", 0, "cost in dollars")
	c.RunE = a.withClient(func(ctx context.Context, server *client.Client, args []string) error {
		if !flags.Changed("turns") && !flags.Changed("tokens") && !flags.Changed("time") && !flags.Changed("cost") {
			return wrong("no limit, want at least one of --turns, --tokens, --time and --cost")
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
		return a.showBudget(b)
	})
	return c
}

func (a *app) showBudget(b contract.Budget) error {
	t := display.NewTable(b.Scope, "LIMIT", "HELD", "SPENT", "LEFT")
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	cost := func(n int64) string { return "$" + strconv.FormatFloat(float64(n)/1e9, 'f', -1, 64) }
	for _, row := range []struct {
		name        string
		limit       *int64
		held, spent int64
		left        *int64
		text        func(int64) string
	}{
		{"turns", b.Limit.Turns, b.Held.Turns, b.Spent.Turns, b.Remaining.Turns, count},
		{"tokens", b.Limit.Tokens, b.Held.Tokens, b.Spent.Tokens, b.Remaining.Tokens, count},
		{"time", b.Limit.TimeMS, b.Held.TimeMS, b.Spent.TimeMS, b.Remaining.TimeMS, milliseconds},
		{"cost", b.Limit.CostNano, b.Held.CostNano, b.Spent.CostNano, b.Remaining.CostNano, cost},
	} {
		limit, left := "none", "any"
		if row.limit != nil {
			limit = row.text(*row.limit)
		}
		if row.left != nil {
			left = row.text(*row.left)
		}
		t.Row(row.name, limit, row.text(row.held), row.text(row.spent), left)
	}
	return a.table(b, t)
}
