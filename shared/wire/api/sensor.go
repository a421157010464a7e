package api

import (
	"github.com/sortie-dev/sortie/shared/app/sensors"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// EventReceipts returns the response of POST /v1/jobs/{job_id}/events.
func EventReceipts(receipts []sensors.Receipt) contract.EventReceipts {
	found := contract.EventReceipts{Events: make([]contract.EventReceipt, len(receipts))}
	for i, r := range receipts {
		found.Events[i] = contract.EventReceipt{ID: r.Event.ID, Source: r.Event.Source, Result: contract.EventIgnored}
		if r.Ignored {
			continue
		}
		found.Events[i].Result, found.Events[i].RunID = contract.EventCreated, r.Run.ID
		if r.Existing {
			found.Events[i].Result = contract.EventExisting
		}
	}
	return found
}

// eventShown returns the attributes of the item of a run; nil without one.
func eventShown(r run.Run) *contract.TriggeringEvent {
	if r.Event == nil {
		return nil
	}
	return &contract.TriggeringEvent{ID: r.Event.ID, Source: r.Event.Source, Type: r.Event.Type, Subject: r.Event.Subject}
}
