package httpkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Config configures New.
type Config struct {
	// Tokens provides the client tokens; nil means no tokens.
	Tokens TokenSource
	// Tickets opens tickets; nil means that tickets are refused.
	Tickets TicketSource
	// Loopback means that only programs on this host can reach the server. They may omit a
	// token unless Tokens requires one.
	Loopback bool
	// Local is the identity of programs on this host without a token. Its Subject is replaced.
	Local port.Identity
	// PublicHost is an additional host name, with or without port, that a server on loopback
	// accepts; empty for none.
	PublicHost string
	// Origins are the origins whose pages may read responses; empty disables CORS.
	Origins []string
	// MaxWrites is the maximum number of concurrent requests of clients other than GET, each
	// counted until EndWrite. Further requests are refused with 429 before their body is read.
	// 0 means no limit. Workers have no limit, because a refused report costs more than a late
	// one.
	MaxWrites int
	Clock     clock.Clock
	Log       *slog.Logger
	// AccessLevel is the level of the access log; 0 means Info.
	AccessLevel slog.Level
	// NewID returns a new correlation id, a UUID of version 4.
	NewID func() string
}

type server struct {
	config  Config
	mux     *http.ServeMux
	methods []string
	watch   watch
	// writes has one element for each request that MaxWrites counts.
	writes chan struct{}
	// tokenWarning limits the log lines about ignored tokens to one.
	tokenWarning sync.Once
}

// New returns a handler for all routes. The error joins all problems of the configuration. A
// server that is not on loopback needs tokens.
func New(config Config, routes ...Route) (http.Handler, error) {
	s := &server{config: config, mux: http.NewServeMux(), methods: methodsOf(routes), writes: make(chan struct{}, config.MaxWrites)}
	var wrong []error
	if config.Clock == nil || config.Log == nil || config.NewID == nil {
		wrong = append(wrong, errors.New("missing clock, log or id generator"))
	}
	if !config.Loopback && config.Tokens == nil && slices.ContainsFunc(routes, forClients) {
		wrong = append(wrong, ErrNoToken)
	}
	if config.Tokens == nil {
		s.config.Tokens = FixedTokens()
	}
	for _, t := range routes {
		wrong = append(wrong, s.mount(t))
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, fmt.Errorf("cannot serve the API: %w", err)
	}
	return s, nil
}

func forClients(t Route) bool { return t.Access == ForClients || t.Access == ForReaders }

// mount adds a route. It returns a panic of ServeMux, such as for conflicting patterns, as an
// error.
func (s *server) mount(t Route) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("route %s %s: %v", t.Method, t.Pattern, r)
		}
	}()
	if t.Handle == nil || !slices.Contains([]Access{ForClients, ForReaders, ForWorkers, ForAll}, t.Access) {
		return fmt.Errorf("route %s %s: missing handler or access", t.Method, t.Pattern)
	}
	if forClients(t) != t.Scope.Known() {
		return fmt.Errorf("route %s %s: got the scope %q, want one of %v for clients and none otherwise", t.Method, t.Pattern, t.Scope, access.Scopes())
	}
	s.mux.HandleFunc(t.Method+" "+t.Pattern, func(w http.ResponseWriter, r *http.Request) {
		x := exchangeOf(r.Context())
		if x.err = s.enter(x, &t, r); x.err != nil {
			return
		}
		if x.endWrite != nil {
			defer x.endWrite()
		}
		if forClients(t) {
			ctx, end := s.watch.add(s, x, r.Context())
			defer end()
			r = r.WithContext(ctx)
		}
		x.err = t.Handle(w, r)
	})
	return nil
}

// enter does the work before the handler of a route. It is a separate function so that its
// stack is free while the handler waits.
func (s *server) enter(x *exchange, t *Route, r *http.Request) error {
	x.route, x.errors, x.fail, x.refused = t.Pattern, t.Errors, t.Fail, t.Refused
	if t.OwnCorrelationID {
		s.identify(x, s.config.NewID())
	}
	if err := s.admit(x, *t, r); err != nil {
		return err
	}
	if err := t.checkQuery(r); err != nil {
		return err
	}
	if s.config.MaxWrites > 0 && forClients(*t) && t.Method != http.MethodGet {
		select {
		case s.writes <- struct{}{}:
			x.endWrite = sync.OnceFunc(func() { <-s.writes })
		default:
			return fault.New(fault.Throttled, "the server is busy: %d requests are being served; retry later", s.config.MaxWrites)
		}
	}
	return nil
}

// ServeHTTP serves one request and writes one access log line.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimSpace(r.Header.Get("X-Correlation-Id"))
	if !saneID(id) {
		id = s.config.NewID()
	}
	x := &exchange{
		ResponseWriter: w, began: s.config.Clock.Now(), identity: "none", route: "none", head: r.Method == http.MethodHead, openAI: isOpenAIPath(r),
	}
	r = r.WithContext(context.WithValue(runs.WithRequest(r.Context(), id), exchangeKey{}, x))
	s.identify(x, id)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	body := s.timeBody(w, r)
	defer func() {
		thrown := recover()
		if body != nil {
			if x.err != nil && x.status == 0 {
				body.refuse(w, r)
			}
			body.stop()
		}
		aborted := s.settle(x, r, thrown)
		s.logAccess(r.Context(), x, r)
		if aborted {
			panic(http.ErrAbortHandler)
		}
	}()
	if s.share(x, r) {
		return
	}
	if x.err = s.checkHost(r); x.err != nil {
		return
	}
	if x.err = s.lookup(r); x.err != nil {
		return
	}
	s.mux.ServeHTTP(x, r)
}

// identify sets the correlation id of a request. Clients of OpenAI's API read it as the request
// id.
func (s *server) identify(x *exchange, id string) {
	x.correlationID, x.log = id, s.config.Log.With("correlation_id", id)
	if x.Header().Set("X-Correlation-Id", id); x.openAI {
		x.Header().Set("X-Request-Id", id)
	}
}

// settle writes the error response if the handler has not started a response. aborted means
// that a started response is incomplete: the connection must be closed so that the client
// notices.
func (s *server) settle(x *exchange, r *http.Request, thrown any) (aborted bool) {
	ctx := r.Context()
	if x.revoked.Swap(false) && x.status == 0 {
		x.err, thrown = errRevoked, nil
	}
	switch {
	case thrown == http.ErrAbortHandler: //nolint:errorlint // a panic's value, not an error that was returned
		return true
	case thrown != nil:
		x.err = errors.New("panic: " + fmt.Sprint(thrown))
		x.log.ErrorContext(ctx, "handler panicked", "identity", x.identity, "route", x.route, "panic", fmt.Sprint(thrown), "stack", string(debug.Stack()))
	case x.err == nil:
		return false
	case errors.Is(x.err, context.Canceled) && ctx.Err() != nil && x.status == 0:
		x.status = statusGone
		return true
	}
	p := ProblemOf(x.err)
	if x.code = p.Body.Code; x.refused != nil && !x.accepted {
		x.refused(ctx, fault.Code(x.code), x.err)
	}
	level := slog.LevelDebug
	if p.Body.Status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	x.log.Log(ctx, level, "request failed", "identity", x.identity, "route", x.route, "code", x.code, "error", x.err.Error())
	if x.status != 0 {
		return true
	}
	if x.fail != nil {
		x.fail(x, r, p)
		return false
	}
	if x.errors != nil {
		p.writeAs(x, x.errors)
		return false
	}
	p.write(x, r, x.correlationID)
	return false
}

func (s *server) logAccess(ctx context.Context, x *exchange, r *http.Request) {
	if x.status == 0 {
		x.status = http.StatusOK // net/http sends 200 for a handler that wrote nothing
	}
	attrs := []slog.Attr{ // identity comes first, so that a truncated line still has it
		slog.String("identity", x.identity), slog.String("method", r.Method), slog.String("route", x.route), slog.Int("status", x.status),
		slog.Int64("bytes", x.bytes), slog.Duration("duration", s.config.Clock.Now().Sub(x.began)),
	}
	if x.code != "" {
		attrs = append(attrs, slog.String("code", x.code))
	}
	x.log.LogAttrs(ctx, s.config.AccessLevel, "request", attrs...)
}
