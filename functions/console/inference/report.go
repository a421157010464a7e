package inference

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/functions/console/ui"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// UsagePage shows what inference tasks have used in the last days, by day, model, key and session.
var UsagePage = page.Page{
	Name: "usage", Path: "inference/usage", Scope: access.RunsRead, Query: []string{"days"}, Show: showUsage,
}

// reportDays are the ranges that the page offers. The first one is the default.
var reportDays = []int{30, 7, 90, 400}

// The most rows that the page reads of a group, and shows of it.
const (
	reportRead  = 1000
	reportShown = 20
)

// report is the content of the page.
type report struct {
	Spans    []ui.Preset
	From, To string
	Total    contract.UsageSum
	// Days are all days of the range, the oldest first. Most is the largest number of tokens of one.
	Days []contract.UsageRow
	Most int64
	// Groups are those by model, key and session.
	Groups []reportGroup
	// Sheet is the address of the report as CSV.
	Sheet string
}

// reportGroup has the rows of a group, the largest cost first. Most is the largest number of tokens of
// a row, More the number of rows that are not shown, at least.
type reportGroup struct {
	Name string
	Rows []contract.UsageRow
	Most int64
	More int
}

// tokensIn returns the tokens of a sum.
func tokensIn(s contract.UsageSum) int64 { return s.InputTokens + s.OutputTokens }

func showUsage(v *page.Visit) (page.View, error) {
	days := reportDays[0]
	if n, err := strconv.Atoi(v.Request.URL.Query().Get("days")); err == nil && slices.Contains(reportDays, n) {
		days = n
	}
	to := v.Now().UTC()
	r := &report{From: to.AddDate(0, 0, 1-days).Format(time.DateOnly), To: to.Format(time.DateOnly)}
	for _, n := range slices.Sorted(slices.Values(reportDays)) {
		r.Spans = append(r.Spans, ui.Preset{Label: strconv.Itoa(n) + " days", Path: "inference/usage?days=" + strconv.Itoa(n), Current: n == days})
	}
	query := func(by string) url.Values { return url.Values{"from": {r.From}, "to": {r.To}, "by": {by}} }
	names := []string{"day", "model", "key", "session"}
	found := make([]contract.Usage, len(names))
	var reads []func() error
	for i, by := range names {
		of := query(by)
		of.Set("limit", strconv.Itoa(reportRead))
		reads = append(reads, func() error { return v.Get("/v1/usage", of, &found[i]) })
	}
	if err := page.Together(reads...); err != nil {
		return page.View{}, err
	}
	r.Total = found[0].Total
	r.fill(found[0].Rows, to.AddDate(0, 0, 1-days), days)
	for i, u := range found[1:] {
		r.Groups = append(r.Groups, groupOf(names[i+1], u))
	}
	all := query("day,model,key,session")
	all.Set("as", "csv")
	r.Sheet = ui.WithQuery("json/v1/usage", all)
	return page.View{
		Title: "Usage", JSON: ui.WithQuery("/v1/usage", query("day")), Command: ui.Command("usage", "--by", "day", "--from", r.From, "--to", r.To), Content: r.content,
	}, nil
}

// fill sets the days of the report. A day without a row has used nothing.
func (r *report) fill(rows []contract.UsageRow, from time.Time, days int) {
	known := map[string]contract.UsageSum{}
	for _, row := range rows {
		known[row.Day] = row.UsageSum
	}
	for i := range days {
		day := from.AddDate(0, 0, i).Format(time.DateOnly)
		r.Days = append(r.Days, contract.UsageRow{Day: day, UsageSum: known[day]})
		r.Most = max(r.Most, tokensIn(known[day]))
	}
}

// groupOf returns the largest rows of a group.
func groupOf(name string, u contract.Usage) reportGroup {
	g := reportGroup{Name: name, Rows: u.Rows}
	slices.SortStableFunc(g.Rows, func(a, b contract.UsageRow) int {
		return cmp.Or(cmp.Compare(b.CostNano, a.CostNano), cmp.Compare(tokensIn(b.UsageSum), tokensIn(a.UsageSum)))
	})
	if g.More = max(len(g.Rows)-reportShown, 0); u.NextCursor != "" {
		g.More++
	}
	g.Rows = g.Rows[:min(len(g.Rows), reportShown)]
	for _, row := range g.Rows {
		g.Most = max(g.Most, tokensIn(row.UsageSum))
	}
	return g
}

// nameOf returns the name of a row of the group.
func (g reportGroup) nameOf(row contract.UsageRow) string {
	switch {
	case row.Session != nil && *row.Session == "":
		return "without a session"
	case row.Session != nil:
		return *row.Session
	}
	return cmp.Or(row.Model, row.Key)
}
