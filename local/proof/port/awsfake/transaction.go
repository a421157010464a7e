package awsfake

import (
	"context"
	"reflect"
	"time"

	"github.com/sortie-dev/sortie/local/proof/cost/units"
)

// Limits of TransactWriteItems.
const (
	maxActions          = 100
	maxTransactionBytes = 4 << 20
	// tokenLife is the time for which a request token is stored.
	tokenLife = 10 * time.Minute
)

type transactWriteItems struct {
	TransactItems          []transactItem
	ClientRequestToken     string
	ReturnConsumedCapacity string
}

// transactItem has exactly one field that is not nil.
type transactItem struct{ Put, Update, Delete, ConditionCheck *action }

// action returns the action and the operation that it corresponds to.
func (i transactItem) action() (operation string, a *action) {
	switch {
	case i.Put != nil:
		return "PutItem", i.Put
	case i.Update != nil:
		return "UpdateItem", i.Update
	case i.Delete != nil:
		return "DeleteItem", i.Delete
	}
	return "ConditionCheck", i.ConditionCheck
}

func (r *transactWriteItems) call() (string, bool) {
	if len(r.TransactItems) > 0 {
		if _, a := r.TransactItems[0].action(); a != nil {
			subject, _ := a.call()
			return subject, true
		}
	}
	return "", true
}

// transaction is an applied transaction with a request token.
type transaction struct {
	items []transactItem
	at    time.Time
	// unsure is true if the answer to the caller was lost. The first retry is then too early.
	unsure bool
}

// reason is the cancellation reason of one action of a transaction.
type reason struct {
	Code    string
	Message string `json:",omitempty"`
	Item    item   `json:",omitempty"`
}

func cancelled(reasons []reason) error {
	r := refuse("TransactionCanceledException", "transaction cancelled, please refer to the cancellation reasons")
	r.more = map[string]any{"CancellationReasons": reasons}
	return r
}

func (d *DynamoDB) transactWriteItems(_ context.Context, _ Call, r *transactWriteItems, fate Fate) (any, error) {
	if n := len(r.TransactItems); n == 0 || n > maxActions {
		return nil, invalid("got %d actions in a transaction, want 1 to %d", n, maxActions)
	}
	known, err := d.known(r)
	if err != nil {
		return nil, err
	}
	reasons, changes := make([]reason, len(r.TransactItems)), make([]*planned, len(r.TransactItems))
	failed, total := false, 0
	seen := map[[3]string]bool{}
	for i, each := range r.TransactItems {
		operation, a := each.action()
		if a == nil {
			return nil, invalid("got an empty action")
		}
		p, err := d.plan(operation, a)
		if err != nil {
			return nil, err
		}
		if place := [3]string{p.table.name, p.key[0], p.key[1]}; seen[place] {
			return nil, invalid("transaction request cannot include multiple operations on one item")
		} else { //nolint:revive // place is used in both branches
			seen[place] = true
		}
		changes[i], reasons[i] = p, reason{Code: "None"}
		total += max(p.before.bytes(), p.after.bytes())
		switch {
		case fate == Conflicted && i == len(changes)/2:
			reasons[i], failed = reason{Code: "TransactionConflict", Message: "transaction is ongoing for the item"}, true
		case fate == Throttled && i == len(changes)/2:
			reasons[i], failed = reason{Code: "ThrottlingError", Message: "throughput exceeds the current capacity"}, true
		case d.throughput.refuses(p.table.name, p.key[0], true):
			reasons[i], failed = reason{Code: "ThrottlingError", Message: "throughput exceeds the current capacity"}, true
		case p.refused && fate != Conflicted && fate != Throttled:
			reasons[i], failed = reason{Code: "ConditionalCheckFailed", Message: "the conditional request failed", Item: p.old()}, true
		}
	}
	if total > maxTransactionBytes {
		return nil, invalid("collection size of items exceeded: got %d bytes, want at most %d", total, maxTransactionBytes)
	}
	if failed && !known {
		for _, p := range changes { // the service charges a cancelled transaction for its preparation
			d.throughput.use(p.table.name, p.key[0], true, p.refusedUnits())
		}
		return nil, cancelled(reasons)
	}
	return d.commit(r, changes, known, fate)
}

type committed struct {
	ConsumedCapacity []consumed `json:",omitempty"`
}

// commit applies the changes, unless an earlier call with the same token has applied them.
func (d *DynamoDB) commit(r *transactWriteItems, changes []*planned, known bool, fate Fate) (any, error) {
	spent := 0.0
	counted := d.counts(r.ReturnConsumedCapacity)
	for _, p := range changes {
		if counted {
			used := units.Transaction * units.Written(p.before, p.after, size)
			d.throughput.use(p.table.name, p.key[0], true, used)
			spent += used
		}
		if !known {
			d.write(p)
		}
	}
	output := &committed{}
	used, err := report(r.ReturnConsumedCapacity, changes[0].table.name, spent)
	if used != nil {
		output.ConsumedCapacity = []consumed{*used}
	}
	if r.ClientRequestToken != "" && !known {
		d.transactions[r.ClientRequestToken] = &transaction{r.TransactItems, d.config.Clock.Now(), fate == Unsure}
	}
	return output, err
}

// known reports whether a transaction with the same token was applied before.
func (d *DynamoDB) known(r *transactWriteItems) (bool, error) {
	now := d.config.Clock.Now()
	for token, before := range d.transactions {
		if now.Sub(before.at) > tokenLife {
			delete(d.transactions, token)
		}
	}
	before := d.transactions[r.ClientRequestToken]
	switch {
	case before == nil:
		return false, nil
	case !reflect.DeepEqual(before.items, r.TransactItems):
		return false, refuse("IdempotentParameterMismatchException", "the request uses the same client token as a previous, but non-identical request")
	case before.unsure:
		before.unsure = false
		return false, refuse("TransactionInProgressException", "the transaction with the given request token is already in progress")
	}
	return true, nil
}
