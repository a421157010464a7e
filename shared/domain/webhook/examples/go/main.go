// The receiver prints the type of each event with a valid signature. PORT is its port.
package main

import (
	"cmp"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sortie-dev/sortie/events"
)

func main() {
	receiver, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /sortie", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, events.MaxSize))
		if err == nil {
			err = receiver.Verify(body, r.Header)
		}
		event, malformed := events.Parse(body)
		if err != nil || malformed != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Println(event.EventType, event.EventID)
	})
	address := "127.0.0.1:" + cmp.Or(os.Getenv("PORT"), "9000")
	log.Fatal(http.ListenAndServe(address, nil)) //nolint:gosec // G114: an example
}
