package flymachines

import (
	"fmt"
	"net/http"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
)

// handler answers a request. A returned error becomes the answer.
type handler func(http.ResponseWriter, *http.Request) error

// onApp wraps an action on an app's machines. The subject of a creation is in its body, so
// create injects its faults itself.
func (s *Server) onApp(action string, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		app := r.PathValue("app")
		if !s.hasApp(app) {
			return refuse(http.StatusNotFound, "app not found")
		}
		if action == faults.Create {
			return h(w, r)
		}
		return s.inject(w, r, action, "", faults.Subject{App: app}, h)
	}
}

// onMachine wraps an action on one machine. An empty action is one that Fly does not have; it
// gets no faults.
func (s *Server) onMachine(action string, h func(http.ResponseWriter, *http.Request, *machine) error) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		app, id := r.PathValue("app"), r.PathValue("id")
		if !s.hasApp(app) {
			return refuse(http.StatusNotFound, "app not found")
		}
		m := s.find(app, id)
		if m == nil {
			return refuse(http.StatusNotFound, "machine not found")
		}
		if action == "" {
			return h(w, r, m)
		}
		return s.inject(w, r, action, id, m.subject(), func(w http.ResponseWriter, r *http.Request) error {
			return h(w, r, m)
		})
	}
}

// inject runs a request with the faults that the plan selects for it.
func (s *Server) inject(w http.ResponseWriter, r *http.Request, action, id string, subject faults.Subject, h handler) error {
	injector := s.injector()
	now := s.cfg.Clock.Now()
	_, throttled := injector.Inject(faults.Throttle, action, subject)
	if throttled || (injector.Plan().RealLimits && !s.limits.allow(action, subject.App, id, now)) {
		return refuse(http.StatusTooManyRequests, "resource_exhausted: rate limit exceeded")
	}
	if _, struck := injector.Inject(faults.BadGateway, action, subject); struck {
		return refuse(http.StatusBadGateway, "unavailable: bad gateway")
	}
	if rule, struck := injector.Inject(faults.Capacity, action, subject); struck {
		return noCapacity(rule.Variant)
	}
	if _, struck := injector.Inject(faults.Leased, action, subject); struck {
		return refuse(http.StatusConflict, "aborted: machine ID %s lease currently held by another, expires at %s", id, now.Add(time.Minute).UTC().Format(time.RFC3339))
	}
	if _, struck := injector.Inject(faults.Changed, action, subject); struck {
		return refuse(http.StatusConflict, "aborted: machine ID %s has another version", id)
	}
	if rule, struck := injector.Inject(faults.Slow, action, subject); struck {
		_ = s.delay(rule.For) // a shutdown ends the fault
	}
	_, lost := injector.Inject(faults.LostAnswer, action, subject)
	_, late := injector.Inject(faults.BadGatewayAfter, action, subject)
	if !lost && !late {
		return h(w, r)
	}
	if err := h(nowhere{http.Header{}}, r); err != nil {
		return err // the request failed anyway
	}
	if lost {
		panic(http.ErrAbortHandler)
	}
	return refuse(http.StatusBadGateway, "unavailable: bad gateway")
}

// nowhere is a ResponseWriter that discards the answer.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}

// noCapacity returns Fly's error for the variant of missing capacity.
func noCapacity(variant string) error {
	const aborted = "aborted: could not reserve resource for machine: insufficient %s available to fulfill request"
	switch variant {
	case "memory":
		return refuse(http.StatusConflict, aborted, "memory")
	case "cpu":
		return refuse(http.StatusConflict, aborted, "CPUs")
	case "none":
		return refuse(http.StatusConflict, "aborted: no capacity")
	case "volume":
		return refuse(http.StatusPreconditionFailed, "failed_precondition: insufficient resources to create new machine with existing volume")
	case "quota":
		return refuse(http.StatusForbidden, "permission_denied: this machine is over the allowed quota. please consider other regions")
	case "region":
		return refuse(http.StatusBadRequest, "invalid_argument: no capacity")
	}
	e := refuse(http.StatusUnprocessableEntity, "insufficient resources available to fulfill request")
	e.code = "insufficient_capacity"
	return e
}

// chooseDefects chooses the faults of a new machine.
func (s *Server) chooseDefects(subject faults.Subject) defects {
	injector, now := s.injector(), s.cfg.Clock.Now()
	var l defects
	if rule, struck := injector.Inject(faults.Invisible, faults.Create, subject); struck {
		l.InvisibleUntil = now.Add(rule.For)
	}
	for kind, place := range map[faults.Kind]**stuck{
		faults.StuckCreated:    &l.StuckCreated,
		faults.StuckStarting:   &l.StuckStarting,
		faults.StuckDestroying: &l.StuckDestroying,
	} {
		if rule, struck := injector.Inject(kind, faults.Create, subject); struck {
			*place = &stuck{For: rule.For}
		}
	}
	if rule, struck := injector.Inject(faults.OOM, faults.Create, subject); struck {
		l.OOM, l.OOMAfter = true, rule.For
	}
	_, l.LostExit = injector.Inject(faults.LostExit, faults.Create, subject)
	_, l.Unreachable = injector.Inject(faults.Unreachable, faults.Create, subject)
	return l
}

func (s *Server) getFaults(w http.ResponseWriter, _ *http.Request) error {
	s.answer(w, http.StatusOK, s.Faults())
	return nil
}

// putFaults replaces the fault plan. An empty body removes all faults.
func (s *Server) putFaults(w http.ResponseWriter, r *http.Request) error {
	var plan faults.Plan
	if r.Method == http.MethodPut {
		if err := readBody(r, &plan); err != nil {
			return err
		}
	}
	if err := plan.Validate(); err != nil {
		return refuse(http.StatusBadRequest, "invalid_argument: %v", err)
	}
	if err := s.SetFaults(plan); err != nil {
		return fmt.Errorf("cannot set the faults: %w", err)
	}
	return s.ok(w)
}
