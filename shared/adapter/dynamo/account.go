package dynamo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/usages"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/port"
)

// Attributes of an account. attrDoc has its limit, attrVersion the version of the limit.
// attrUsed has the sum of the held and the spent amount, because a condition cannot add.
// attrHeld has the held amount.
const (
	attrExpires = "exp"
	attrUsed    = "u" // followed by the index of the part
	attrHeld    = "h"
	attrClosed  = "closed" // when it was closed
)

// pkAccount returns the partition key of an account, whose item takes less than one write unit.
// In a transaction each of a run's accounts costs two units to hold, and two to settle: twelve
// for a run of three accounts, and four more for each limit of its key. A hold reads them first, strongly consistent: one read unit
// each.
func pkAccount(tenant, scope string) string { return within(tenant, "account", scope) }

func accountKey(tenant, scope string) item { return keyOf(pkAccount(tenant, scope), sortAccount) }

func accountOf(is item) (budget.Account, error) {
	tenant, scope := named(textOf(is[schema.Partition.Name]))
	a := budget.Account{
		Tenant: tenant, Scope: scope, Version: numberOf(is[attrVersion]), CreatedAt: timeOf(is[attrMade]), ExpiresAt: timeOf(is[attrExpires]),
		Closed: is[attrClosed] != nil,
	}
	used, held := budget.Amount{}.Values(), budget.Amount{}.Values()
	for i := range used {
		used[i], held[i] = numberOf(is[partOf(attrUsed, i)]), numberOf(is[partOf(attrHeld, i)])
	}
	a.Held = budget.AmountOf(held)
	a.Spent = budget.AmountOf(used).Minus(a.Held)
	if doc := textOf(is[attrDoc]); doc != "" {
		if err := json.Unmarshal([]byte(doc), &a.Limit); err != nil {
			return a, fmt.Errorf("cannot decode the limit of %s: %w", scope, err)
		}
	}
	return a, nil
}

func partOf(attribute string, i int) string { return fmt.Sprintf("%s%d", attribute, i) }

// Account implements port.AccountStore.
func (s *Store) Account(ctx context.Context, tenant, scope string) (a budget.Account, err error) {
	is, err := s.get(ctx, accountKey(tenant, scope), true)
	if err == nil && is == nil {
		err = port.ErrNotFound
	}
	if err == nil {
		a, err = accountOf(is)
	}
	return a, wrap(err, "read the account", scope)
}

// PutLimit implements port.AccountStore.
func (s *Store) PutLimit(
	ctx context.Context, tenant, scope string, limit budget.Limit, version int64, at time.Time, notes ...port.Note,
) (budget.Account, error) {
	noted, err := s.noteParts(notes)
	doc, malformed := json.Marshal(limit)
	if err == nil {
		err = malformed
	}
	if err == nil {
		p := &part{key: accountKey(tenant, scope), refused: func(context.Context, item) error { return port.ErrConflict }}
		p.requireVersion(version)
		p.set(attrDoc, text(string(doc)))
		p.setCreatedAt(at)
		p.add(attrVersion, 1)
		p.addAmount(attrUsed, budget.Amount{})
		p.addAmount(attrHeld, budget.Amount{})
		err = s.retryOutdated(ctx, func() error { return s.write(ctx, append([]*part{p}, noted...)) })
	}
	if err != nil {
		return budget.Account{}, wrap(err, "store the limit of", scope)
	}
	return s.Account(ctx, tenant, scope)
}

// CloseAccount implements port.AccountStore.
func (s *Store) CloseAccount(ctx context.Context, tenant, scope string, at time.Time) error {
	p := &part{key: accountKey(tenant, scope), refused: func(_ context.Context, is item) error {
		if is[attrClosed] != nil && timeOf(is[attrClosed]).Equal(at) {
			return errApplied // by an earlier try of this call
		}
		return port.ErrNotFound
	}}
	p.present(schema.Partition.Name)
	p.conditions = append(p.conditions, fmt.Sprintf("(attribute_not_exists(%s) OR %[1]s > %s)", p.name(attrExpires), p.value(moment(at))))
	p.absent(attrClosed)
	p.set(attrClosed, moment(at))
	p.initial(attrExpires, moment(at))
	p.initial(schema.TTL, number(purgeOf(at)))
	return wrap(s.retryOutdated(ctx, func() error { return s.write(ctx, []*part{p}) }), "close the account", scope)
}

// requireVersion adds the condition that the limit of the account has this version. 0 means
// that no limit is stored.
func (p *part) requireVersion(version int64) {
	if version == 0 {
		p.absent(attrVersion)
		return
	}
	p.where(attrVersion, "=", number(version))
}

// setCreatedAt sets the creation time of a new account.
func (p *part) setCreatedAt(at time.Time) {
	p.initial(attrMade, moment(at))
}

// initial sets an attribute unless the item already contains it.
func (p *part) initial(name string, value types.AttributeValue) {
	p.sets = append(p.sets, fmt.Sprintf("%s = if_not_exists(%[1]s, %s)", p.name(name), p.value(value)))
}

// expire sets a later expiry. The condition fails if another commit has set an even later one.
func (p *part) expire(at time.Time) {
	p.conditions = append(p.conditions, fmt.Sprintf("(attribute_not_exists(%s) OR %[1]s <= %s)", p.name(attrExpires), p.value(moment(at))))
	p.set(attrExpires, moment(at))
	p.set(schema.TTL, number(purgeOf(at)))
}

// purgeOf returns the Unix time in seconds at which the table's TTL deletes an account that
// expires at this time.
func purgeOf(at time.Time) int64 { return at.Add(budget.Retention).Unix() + 1 }

func (p *part) addAmount(attribute string, a budget.Amount) {
	for i, n := range a.Values() {
		p.add(partOf(attribute, i), n)
	}
}

// ledger contains the budget moves of a commit, for all tries of the commit.
type ledger struct {
	store   *Store
	moves   []budget.Move
	charges usages.Entries
	// known maps the index of a move to its account as it was read. It has nil for an account
	// that does not exist.
	known map[int]*budget.Account
}

func (s *Store) ledger(changes []*change) *ledger {
	var writes []port.Write
	for _, c := range changes {
		if c.Ledger != nil {
			writes = append(writes, c.Write)
		}
	}
	if writes == nil {
		return nil
	}
	return &ledger{store: s, moves: port.Moves(writes), charges: port.Charges(writes), known: map[int]*budget.Account{}}
}

// parts returns the parts of the moves. It does not fail if an account refuses a move: the
// condition of that part fails in the write. The write may fail for a reason that the caller
// needs to know first, such as a known idempotency key or a lost race.
func (l *ledger) parts(ctx context.Context) ([]*part, error) {
	if l == nil {
		return nil, nil
	}
	if err := l.read(ctx); err != nil {
		return nil, err
	}
	var parts []*part
	for i, m := range l.moves {
		a, read := l.known[i]
		if read && a == nil && !m.Holds() {
			continue
		}
		p := &part{key: accountKey(m.Tenant, m.Scope)}
		p.refused = func(_ context.Context, is item) error { return l.learn(i, is) }
		switch {
		case !m.Holds():
			p.present(schema.Partition.Name)
		case a == nil:
			p.absent(schema.Partition.Name)
			p.check(m, m.New(), false)
		default:
			p.requireVersion(a.Version)
			p.check(m, *a, true)
		}
		p.setCreatedAt(m.At)
		p.addAmount(attrUsed, m.Used())
		p.addAmount(attrHeld, m.Hold.Minus(m.Release))
		parts = append(parts, p)
	}
	for _, e := range l.charges {
		p := &part{key: usages.Key(e)}
		p.initial(schema.TTL, number(e.PurgeAt().Unix()))
		for name, n := range usages.Counts(e) {
			p.add(name, n)
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// check adds the conditions under which account a accepts move m, which holds something. It
// also sets the new expiry. a is the account as it was read, or a new one. Other commits may
// have used more of it since.
func (p *part) check(m budget.Move, a budget.Account, exists bool) {
	if m.Check(a) != nil {
		p.present(attrMade)
		p.absent(attrMade) // never
		return
	}
	p.absent(attrClosed)
	if !a.ExpiresAt.IsZero() {
		p.where(attrExpires, ">", moment(m.At))
	} else {
		p.absent(attrExpires)
	}
	more := m.Used().Values()
	for i, limit := range a.Limit.Or(m.Default).Values() {
		if limit != nil && exists {
			p.where(partOf(attrUsed, i), "<=", number(*limit-more[i]))
		}
	}
	if at := m.Expiry(a); !at.Equal(a.ExpiresAt) {
		p.expire(at)
	}
}

// read reads the accounts of the moves that hold something, if they were not read yet.
func (l *ledger) read(ctx context.Context) error {
	var keys []item
	at := map[string]int{}
	for i, m := range l.moves {
		if _, read := l.known[i]; !read && m.Holds() {
			keys = append(keys, accountKey(m.Tenant, m.Scope))
			at[pkAccount(m.Tenant, m.Scope)] = i
		}
	}
	if len(keys) == 0 {
		return nil
	}
	for _, i := range at {
		l.known[i] = nil
	}
	return l.store.fetch(ctx, keys, true, nil, func(is item) error {
		a, err := accountOf(is)
		l.known[at[textOf(is[schema.Partition.Name])]] = &a
		return err
	})
}

// learn stores the account that came with a failed condition. It returns why the account
// refuses the move, or errAgain if it accepts the move now.
func (l *ledger) learn(i int, is item) error {
	m := l.moves[i]
	if is == nil {
		l.known[i] = nil
		if short := m.Check(m.New()); short != nil {
			return &port.NoBudget{Shortage: *short}
		}
		return errAgain
	}
	a, err := accountOf(is)
	if err != nil {
		return err
	}
	l.known[i] = &a
	if short := m.Check(a); short != nil {
		return &port.NoBudget{Shortage: *short}
	}
	return errAgain
}
