//go:build unix

package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/port"
)

// grantFlags are the flags of a token's limits.
type grantFlags struct {
	models                []string
	budget, rate, expires string
}

func (g *grantFlags) define(flags *pflag.FlagSet) {
	flags.StringSliceVar(&g.models, "models", nil, "models that the token may use, separated by commas; default all")
	flags.StringVar(&g.budget, "budget", "", "most that its inference runs may cost in a UTC day, week, month or in total, such as 20USD/month")
	flags.StringVar(&g.rate, "rate", "", "inference runs that it may start in a minute, such as 60/minute")
	flags.StringVar(&g.expires, "expires", "", "time until the token expires, such as 720h, or the UTC date or time, such as 2026-12-31; default never")
}

// apply sets the limits of a record.
func (g *grantFlags) apply(record *access.Token, now time.Time) (err error) {
	record.Models = g.models
	if g.budget != "" {
		allowance, err := budget.ParseAllowance(g.budget)
		if err != nil {
			return cli.Wrong("--budget: %w", err)
		}
		record.Budget = &allowance
	}
	if g.rate != "" {
		count, _ := strings.CutSuffix(g.rate, "/minute")
		if record.RequestsPerMinute, err = strconv.ParseInt(strings.TrimSpace(count), 10, 64); err != nil || record.RequestsPerMinute < 1 {
			return cli.Wrong("--rate: malformed rate %q, want a number such as 60/minute", g.rate)
		}
	}
	record.ExpiresAt, err = expiryOf(g.expires, now)
	return err
}

// expiryOf returns the time of --expires; zero for never.
func expiryOf(text string, now time.Time) (time.Time, error) {
	if text == "" || text == "0" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		at, err = time.Parse(time.RFC3339, text)
	}
	if err != nil {
		var life time.Duration
		if life, err = time.ParseDuration(text); err == nil {
			at = now.Add(life)
		}
	}
	switch {
	case err != nil:
		return at, cli.Wrong("--expires: malformed time %q, want a duration such as 720h, or a date such as 2026-12-31", text)
	case !at.After(now):
		return at, cli.Wrong("--expires: %s is not in the future", text)
	}
	return at.UTC().Truncate(time.Second), nil
}

// listedToken is a record with the cost of its runs in the current period of its budget.
type listedToken struct {
	access.Token
	SpentNano *int64 `json:"spentNanodollars,omitempty"`
	HeldNano  *int64 `json:"heldNanodollars,omitempty"`
}

// limits returns the columns of a record's limits.
func (t listedToken) limits() (models, spent, rate string) {
	models, spent, rate = "all", "-", "-"
	if len(t.Models) > 0 {
		models = strings.Join(t.Models, ",")
	}
	if t.Budget != nil {
		spent = fmt.Sprintf("%.2f of %s", budget.Dollars(*t.SpentNano), t.Budget)
	}
	if t.RequestsPerMinute > 0 {
		rate = fmt.Sprintf("%d/minute", t.RequestsPerMinute)
	}
	return models, spent, rate
}

// withSpending adds to records what the accounts of their budgets have.
func (a *Operator) withSpending(ctx context.Context, l tokenList, tokens []access.Token) ([]listedToken, error) {
	listed := make([]listedToken, len(tokens))
	var read func(tenant, scope string) (budget.Account, error)
	for i, t := range tokens {
		if listed[i].Token = t; t.Budget == nil {
			continue
		}
		if read == nil {
			var err error
			if read, err = a.accounts(ctx, l); err != nil {
				return nil, err
			}
		}
		account, err := read(t.Tenant, budget.KeyScope(t.Name, t.Budget.Period, a.Clock.Now()))
		if err != nil && !errors.Is(err, port.ErrNotFound) {
			return nil, fmt.Errorf("cannot read the budget of %s: %w", t.Name, err)
		}
		listed[i].SpentNano, listed[i].HeldNano = &account.Spent.CostNano, &account.Held.CostNano
	}
	return listed, nil
}

// accounts returns a function that reads the accounts of a data folder or a stage.
func (a *Operator) accounts(ctx context.Context, l tokenList) (func(tenant, scope string) (budget.Account, error), error) {
	if l.stage != "" {
		found, _, err := a.find(ctx, stageFlags{l.stage, l.settings}, "")
		if err != nil {
			return nil, err
		}
		return func(tenant, scope string) (budget.Account, error) { return found.Account(ctx, tenant, scope) }, nil
	}
	path := filepath.Join(l.Data, stack.RecordsFile)
	return func(tenant, scope string) (budget.Account, error) {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) { // no server has used the folder
			return budget.Account{}, port.ErrNotFound
		}
		return sqlite.ReadAccount(ctx, path, tenant, scope)
	}, nil
}
