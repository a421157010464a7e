package budgets

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/usage"
	"github.com/sortie-dev/sortie/shared/port"
)

// UsageQuery selects usage of the caller's tenant.
type UsageQuery struct {
	// From and To are UTC days such as 2026-11-29, both inclusive. An empty To is today, an empty
	// From is usageDays before it.
	From, To string
	// By is a list of dimensions, separated by commas.
	By string
	// Cursor continues after a page of at most Limit rows. A query without a limit has one page.
	Cursor string
	Limit  int
}

// UsageReport is a page of the answer to a query.
type UsageReport struct {
	From, To string
	By       []usage.Dimension
	Rows     []usage.Entry
	// Total is the sum of all rows, those of other pages too.
	Total usage.Sum
	// Next is the cursor of the next page; empty for the last one.
	Next string
}

const (
	// usageDays is the number of days of a query without From.
	usageDays = 30
	// usagePage is the number of entries that are read at a time, mostEntries the most that a
	// query reads.
	usagePage   = 1000
	mostEntries = 100_000
)

// Usage returns usage of the caller's tenant, grouped and in the order of day, model, key and
// session. Faults: InvalidRequest with the parameter, and TooLarge for a query of more than
// mostEntries.
func (s *Accounts) Usage(ctx context.Context, who port.Identity, q UsageQuery) (UsageReport, error) {
	report, err := s.newReport(q)
	if err != nil {
		return report, err
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil {
		return report, fault.Invalid("cursor", "malformed cursor, want nextCursor of the previous page")
	}
	groups := usage.NewGroups(report.By)
	left := mostEntries
	for _, sessions := range []bool{false, true} {
		if sessions && !groups.Sessions() {
			continue
		}
		if left, err = s.readUsage(ctx, who.Tenant, &report, sessions, left, groups); err != nil {
			return report, err
		}
	}
	most := q.Limit
	if most == 0 {
		most = mostEntries
	}
	var more bool
	if report.Rows, more = groups.Rows(string(after), most); more {
		report.Next = base64.RawURLEncoding.EncodeToString([]byte(report.Rows[len(report.Rows)-1].ID()))
	}
	return report, nil
}

// newReport returns the report of a query without its rows.
func (s *Accounts) newReport(q UsageQuery) (report UsageReport, err error) {
	report.From, report.To = q.From, q.To
	if report.To == "" {
		report.To = usage.DayOf(s.now())
	}
	to, err := usage.ParseDay(report.To)
	if err != nil {
		return report, fault.Invalid("to", "malformed day %q, want one such as 2026-11-29", limit.Cut(report.To, limit.FileName))
	}
	if report.From == "" {
		report.From = usage.DayOf(to.AddDate(0, 0, 1-usageDays))
	}
	from, err := usage.ParseDay(report.From)
	switch {
	case err != nil:
		return report, fault.Invalid("from", "malformed day %q, want one such as 2026-11-29", limit.Cut(report.From, limit.FileName))
	case to.Before(from):
		return report, fault.Invalid("from", "%s is after %s, want a day before the end", report.From, report.To)
	case to.Sub(from) > usage.Retention:
		return report, fault.Invalid("from", "%d days, want at most %d, for which usage is kept", int(to.Sub(from)/(24*time.Hour)), int(usage.Retention/(24*time.Hour)))
	}
	if report.By, err = usage.ParseDimensions(q.By); err != nil {
		return report, fault.Invalid("by", "%s", err)
	}
	return report, nil
}

// readUsage adds the entries of a query to groups, and to the total if they are not those of single
// sessions. It returns how many more may be read.
func (s *Accounts) readUsage(ctx context.Context, tenant string, report *UsageReport, sessions bool, left int, groups *usage.Groups) (int, error) {
	for after := ""; ; {
		page, err := s.store.Usage(ctx, tenant, report.From, report.To, sessions, after, usagePage)
		if err != nil {
			return left, fmt.Errorf("cannot read the usage: %w", err)
		}
		for _, e := range page {
			groups.Add(e)
			if !sessions {
				report.Total = report.Total.Plus(e.Sum)
			}
		}
		if left -= len(page); left < 0 {
			return left, fault.Invalid("from", "more than %d entries, want fewer days", mostEntries)
		}
		if len(page) < usagePage {
			return left, nil
		}
		after = page[len(page)-1].ID()
	}
}
