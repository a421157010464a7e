package capacity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/redact"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	// failureGroups is how many groups of failures are stored for a pool, and
	// failureMessage the length of a message in bytes.
	failureGroups, failureMessage = 10, 512
	// failureTries limits the retries of a write that conflicts with writes of other
	// processes.
	failureTries = 5
)

// FailureGroup counts the platform failures of a pool with the same code and message.
// Messages that differ only in ids, numbers and times are the same.
type FailureGroup struct {
	Code fault.Code `json:"code"`
	// Message is the message of the last failure. Text that looks like a secret is masked.
	Message string    `json:"message"`
	Count   int       `json:"count"`
	FirstAt time.Time `json:"firstAt"`
	LastAt  time.Time `json:"lastAt"`
}

// failureLog has the groups of a pool, the newest first.
type failureLog struct {
	Groups []FailureGroup `json:"groups"`
}

// with returns the log with the failures of a group added.
func (l failureLog) with(g FailureGroup) failureLog {
	same := func(other FailureGroup) bool {
		return other.Code == g.Code && shapeOf(other.Message) == shapeOf(g.Message)
	}
	if i := slices.IndexFunc(l.Groups, same); i >= 0 {
		old := l.Groups[i]
		g.Count += old.Count
		if old.FirstAt.Before(g.FirstAt) {
			g.FirstAt = old.FirstAt
		}
		if old.LastAt.After(g.LastAt) {
			g.LastAt, g.Message = old.LastAt, old.Message
		}
	}
	others := slices.DeleteFunc(slices.Clone(l.Groups), same)
	all := append([]FailureGroup{g}, others...)
	slices.SortStableFunc(all, func(a, b FailureGroup) int { return b.LastAt.Compare(a.LastAt) })
	return failureLog{all[:min(len(all), failureGroups)]}
}

var (
	// variable matches the words of a message, numbers, times and ids included.
	variable = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9_.:+-]*`)
	// secretForms matches secrets in the text of a platform.
	secretForms = regexp.MustCompile(`(?i)(://)[^/\s@]+(@)|\b((?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{8,}|\b((?:[a-z_-]*(?:token|password|passwd|secret|signature|api[_-]?key))"?\s*[=:]\s*"?)[^\s"'&,;]+`)
	noSecrets   = redact.New("")
)

// shapeOf returns a message with "*" for each word that varies between failures of one kind: a
// word that begins with a digit, or one of 12 characters or more with 3 digits or more.
func shapeOf(message string) string {
	return variable.ReplaceAllStringFunc(message, func(word string) string {
		digits := 0
		for _, c := range word {
			if '0' <= c && c <= '9' {
				digits++
			}
		}
		if '0' <= word[0] && word[0] <= '9' || len(word) >= 12 && digits >= 3 {
			return "*"
		}
		return word
	})
}

// withoutSecrets masks text that looks like a secret and cuts the result to failureMessage
// bytes.
func withoutSecrets(text string) string {
	text = secretForms.ReplaceAllString(text, "${1}${3}${4}"+redact.Mask+"${2}")
	return limit.Cut(strings.ToValidUTF8(string(noSecrets.Bytes([]byte(text))), "?"), failureMessage)
}

// Failures stores the platform failures of pools. Failures whose write fails are stored with
// the next failure of the pool. It is safe for concurrent use.
type Failures struct {
	store port.ResourceStore
	log   *slog.Logger

	mu      sync.Mutex
	pending map[platform.PoolRef]failureLog
	storing map[platform.PoolRef]bool
}

// NewFailures returns the failures in a store.
func NewFailures(store port.ResourceStore, log *slog.Logger) *Failures {
	return &Failures{store: store, log: log, pending: map[platform.PoolRef]failureLog{}, storing: map[platform.PoolRef]bool{}}
}

// Note stores platform failures of a pool. One call at a time writes for a pool; it also writes
// the failures of concurrent calls.
func (s *Failures) Note(ctx context.Context, ref platform.PoolRef, now time.Time, faults ...*fault.Fault) {
	if len(faults) == 0 {
		return
	}
	s.mu.Lock()
	for _, f := range faults {
		s.pending[ref] = s.pending[ref].with(FailureGroup{Code: f.Code, Message: withoutSecrets(f.Message), Count: 1, FirstAt: now, LastAt: now})
	}
	busy := s.storing[ref]
	s.storing[ref] = true
	s.mu.Unlock()
	for !busy {
		s.mu.Lock()
		next := s.pending[ref]
		delete(s.pending, ref)
		if len(next.Groups) == 0 {
			delete(s.storing, ref)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if err := s.add(ctx, ref, now, next); err != nil {
			s.mu.Lock()
			s.pending[ref] = next.merged(s.pending[ref])
			delete(s.storing, ref)
			s.mu.Unlock()
			s.log.WarnContext(ctx, "cannot store the failures of a platform", "pool", ref.ID, "error", err.Error())
			return
		}
	}
}

// merged returns the log with the groups of another one.
func (l failureLog) merged(with failureLog) failureLog {
	for _, g := range with.Groups {
		l = l.with(g)
	}
	return l
}

// add adds groups to the stored ones.
func (s *Failures) add(ctx context.Context, ref platform.PoolRef, now time.Time, more failureLog) error {
	for range failureTries {
		r, known, err := s.load(ctx, ref)
		if err != nil {
			return err
		}
		if r.Version == 0 {
			r.CreatedAt = now
		}
		if r.Document, err = json.Marshal(known.merged(more)); err != nil {
			return fmt.Errorf("cannot encode the failures: %w", err)
		}
		err = s.store.WriteResources(ctx, []port.Resource{r}, nil)
		if !errors.Is(err, port.ErrConflict) {
			return err
		}
	}
	return port.ErrConflict
}

// Groups returns the stored groups of a pool, the newest first.
func (s *Failures) Groups(ctx context.Context, ref platform.PoolRef) ([]FailureGroup, error) {
	_, known, err := s.load(ctx, ref)
	return known.Groups, err
}

// load reads the stored groups of a pool.
func (s *Failures) load(ctx context.Context, ref platform.PoolRef) (r port.Resource, l failureLog, err error) {
	at := port.ResourceRef{Tenant: ref.Tenant, Kind: "pool-errors", ID: ref.ID}
	r, err = s.store.LoadResource(ctx, at)
	if errors.Is(err, port.ErrNotFound) {
		return port.Resource{ResourceRef: at}, l, nil
	}
	if err != nil {
		return r, l, fmt.Errorf("cannot read the failures of the platform of pool %s: %w", ref.ID, err)
	}
	if err := json.Unmarshal(r.Document, &l); err != nil {
		return r, l, fmt.Errorf("cannot decode the failures of the platform of pool %s: %w", ref.ID, err)
	}
	return r, l, nil
}

// Forget deletes the groups of a pool that was deleted.
func (s *Failures) Forget(ctx context.Context, ref platform.PoolRef) {
	s.mu.Lock()
	delete(s.pending, ref)
	s.mu.Unlock()
	r, _, err := s.load(ctx, ref)
	if err == nil && r.Version > 0 {
		err = s.store.WriteResources(ctx, nil, []port.Resource{r})
	}
	if err != nil {
		s.log.WarnContext(ctx, "cannot delete the failures of the platform of a deleted pool", "pool", ref.ID, "error", err.Error())
	}
}
