package service

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/budget"
)

// budgets returns the settings of the default limits of sessions, projects and tenants, bound to
// c.Budgets.
func budgets(c *runs.Config) []setting.Setting {
	d := budget.Standard()
	c.Budgets = &d
	const form = ": turns=N, tokens=N, time=DURATION and cost=DOLLARS with commas between them; a missing part has no limit"
	return []setting.Setting{
		limitOf(&d.Session, "SORTIE_SESSION_BUDGET", "turns=8", "the limit of a session without its own"+form),
		limitOf(&d.Project, "SORTIE_PROJECT_BUDGET", "", "the same for a project"),
		limitOf(&d.Tenant, "SORTIE_TENANT_BUDGET", "", "the same for a tenant"),
		setting.Func("SORTIE_ANSWER_DAYS", "", "how many days prompts and answers of inference are stored, such as 30,acme=7: of all tenants, and of single ones; 0 deletes them after their end", func(text string) (err error) {
			c.Answers, err = parseAnswerDays(text)
			return err
		}),
		setting.Duration(&d.SessionTTL, "SORTIE_SESSION_TTL", "10m", "how long a session is open after the admission of its last task", time.Second, limit.Retention),
	}
}

func limitOf(to *budget.Limit, name, fallback, meaning string) setting.Setting {
	return setting.Func(name, fallback, meaning, func(text string) (err error) {
		*to, err = parseLimit(text)
		return err
	})
}

// parseLimit parses a limit such as "turns=8,tokens=100000,time=1h,cost=0.50". A part that is
// missing is nil, which means no limit.
func parseLimit(text string) (l budget.Limit, err error) {
	list, err := setting.ParseList(text)
	if err != nil {
		return l, err
	}
	for _, each := range list {
		name, value, _ := strings.Cut(each, "=")
		var part **int64
		var n int64
		switch name {
		case "turns":
			part = &l.Turns
			n, err = parseCount(value)
		case "tokens":
			part = &l.Tokens
			n, err = parseCount(value)
		case "time":
			part = &l.TimeMS
			n, err = parseTime(value)
		case "cost":
			part = &l.CostNano
			n, err = parseDollars(value)
		default:
			return l, fmt.Errorf("%q is unknown, want turns=, tokens=, time= or cost=", each)
		}
		switch {
		case err != nil:
			return l, fmt.Errorf("%s: %w", name, err)
		case *part != nil:
			return l, fmt.Errorf("%s occurs twice", name)
		}
		*part = &n
	}
	return l, nil
}

func parseCount(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > budget.MostLimit {
		return 0, fmt.Errorf("%q is not a number from 0 to %d", text, int64(budget.MostLimit))
	}
	return n, nil
}

func parseTime(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration, want one such as 90s or 1h", text)
	}
	if d%time.Millisecond != 0 {
		return 0, fmt.Errorf("%q is not a whole number of milliseconds", text)
	}
	return d.Milliseconds(), nil
}

func parseDollars(text string) (int64, error) {
	dollars, err := strconv.ParseFloat(text, 64)
	if nano := math.Round(dollars * 1e9); err == nil && nano >= 0 && nano <= budget.MostLimit {
		return int64(nano), nil
	}
	return 0, fmt.Errorf("%q is not a number of dollars, want one such as 0.50", text)
}
