package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// usagePage is the number of rows that are read at a time.
const usagePage = "1000"

// Usage reads all rows of a report. query has the parameters from, to and by.
func (c *Client) Usage(ctx context.Context, query url.Values) (all contract.Usage, err error) {
	query.Set("limit", usagePage)
	for {
		page, err := ask[contract.Usage](ctx, c, call{method: http.MethodGet, path: "v1/usage", query: query, repeat: true})
		if err != nil {
			return all, err
		}
		page.Rows = append(all.Rows, page.Rows...)
		if all = page; all.NextCursor == "" {
			return all, nil
		}
		query.Set("cursor", all.NextCursor)
	}
}

// UsageCSV reads all rows of a report as CSV.
func (c *Client) UsageCSV(ctx context.Context, query url.Values) ([]byte, error) {
	return ask[[]byte](ctx, c, call{method: http.MethodGet, path: "v1/usage", query: query, header: http.Header{"Accept": {"text/csv"}}, repeat: true})
}
