package client

import (
	"context"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// OpenConsole returns the address of a page of the console that signs a browser in, once, with
// the client's token. The address is a secret until it is used.
func (c *Client) OpenConsole(ctx context.Context) (address string, ticket contract.ConsoleTicket, err error) {
	_, err = c.do(ctx, call{method: http.MethodPost, path: "console/tickets"}, &ticket)
	return strings.TrimSuffix(c.base.String(), "/") + ticket.Path, ticket, err
}
