package jobs

import (
	"fmt"
	"io"
	"net/http"

	"github.com/sortie-dev/sortie/shared/app/sensors"
	"github.com/sortie-dev/sortie/shared/domain/sensor"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/cloudevent"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// received creates the runs of CloudEvents. It returns 202 if it created one, else 200.
func received(svc *sensors.Events, w http.ResponseWriter, r *http.Request) error {
	events, err := readEvents(w, r)
	if err != nil {
		return err
	}
	receipts, err := svc.Receive(r.Context(), idOf(r), events, sensors.Request{
		Identity: httpkit.CallerOf(r.Context()), CorrelationID: httpkit.CorrelationID(r.Context()), TraceParent: httpkit.TraceParent(r),
	})
	if err != nil {
		return fmt.Errorf("cannot take the events: %w", err)
	}
	status := http.StatusOK
	for _, receipt := range receipts {
		if !receipt.Ignored && !receipt.Existing {
			status = http.StatusAccepted
		}
	}
	return httpkit.WriteJSON(w, status, api.EventReceipts(receipts))
}

// readEvents reads the events of a request.
func readEvents(w http.ResponseWriter, r *http.Request) ([]sensor.Event, error) {
	if !cloudevent.Supported(r.Header) {
		return nil, httpkit.UnsupportedType("unsupported content type, want " + cloudevent.TypeEvent + ", " + cloudevent.TypeBatch +
			" in UTF-8, or another one with the headers ce-specversion, ce-id, ce-source and ce-type")
	}
	body, err := httpkit.ReadBytes(w, r, cloudevent.MaxBody)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // it was only read
	text, err := io.ReadAll(io.NewSectionReader(body, 0, body.Size))
	if err != nil {
		return nil, fmt.Errorf("cannot read the body: %w", err)
	}
	return cloudevent.Read(r.Header, text)
}
