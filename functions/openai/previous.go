package openai

import (
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// continued adds the messages of the previous response to a request. It does nothing if the request
// names none. Faults: NotFound if the tenant has no such stored response, InvalidRequest if it is
// not complete.
func (s responses) continued(r *http.Request, asked *openai.Request, o openai.ResponseOptions) error {
	if o.PreviousID == "" {
		return nil
	}
	if err := httpkit.CallerOf(r.Context()).Need(access.RunsRead, openai.FieldPrevious); err != nil {
		return err
	}
	of, _, err := s.stored(r, o.PreviousID)
	if err != nil {
		return about(err)
	}
	ended, err := s.svc.Ended(r.Context(), of)
	if err != nil {
		return err
	}
	if !ended {
		return fault.Invalid(openai.FieldPrevious, "the response %.80q has not ended, want one that is complete", o.PreviousID)
	}
	answer, err := s.answerOf(r, of)
	switch {
	case fault.Is(err, fault.CursorExpired):
		return about(fault.New(fault.NotFound, "the answer of the response %.80q has expired", o.PreviousID))
	case err != nil:
		return err
	case answer.End == nil:
		return fault.Invalid(openai.FieldPrevious, "the response %.80q has failed or was cancelled, want one that is complete", o.PreviousID)
	}
	said, err := s.svc.Request(r.Context(), of)
	if err != nil {
		return about(fmt.Errorf("cannot read the request of the response: %w", err))
	}
	asked.Continue(o, openai.Conversation(*said, answer))
	return nil
}

// about returns a NotFound fault with the field of the previous response. It returns others
// unchanged.
func about(err error) error {
	if !fault.Is(err, fault.NotFound) {
		return err
	}
	f := *fault.Of(err)
	f.Field = openai.FieldPrevious
	return &f
}

// stored returns the task of a response of the caller's tenant, and its options. Fault: NotFound.
func (s responses) stored(r *http.Request, id string) (run.Run, openai.ResponseOptions, error) {
	none := fault.New(fault.NotFound, "no such response, or it has expired")
	taskID, ok := openai.TaskOf(id)
	if !ok {
		return run.Run{}, openai.ResponseOptions{}, none
	}
	of, err := s.svc.Task(r.Context(), httpkit.CallerOf(r.Context()), taskID)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			return run.Run{}, openai.ResponseOptions{}, none
		}
		return run.Run{}, openai.ResponseOptions{}, fmt.Errorf("cannot read the task of the response: %w", err)
	}
	options, _, ok := openai.OptionsOf(of)
	if !ok || options.Unstored {
		return run.Run{}, openai.ResponseOptions{}, none
	}
	return of, options, nil
}
