package contract

import "time"

// ConsoleTicket is the response of POST /console/tickets: a page of the console that signs a
// browser in, once.
type ConsoleTicket struct {
	// Path is the path and the query of the page, below the address of the API.
	Path      string    `json:"path"`
	ExpiresAt time.Time `json:"expiresAt"`
}
