// Package deployed makes the adapters of a deployed Sortie from the variables of a process. It
// is for bootstraps. No function makes a network call.
//
// Package runner is separate, so that small functions do not link the clients of the platforms.
package deployed

import (
	"errors"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/kms"
	"github.com/sortie-dev/sortie/shared/adapter/stepfunctions"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// ttlGrace is how long the sweep leaves an expired record to the table's TTL. The TTL deletes
// it for free, usually within two days.
const ttlGrace = 72 * time.Hour

// scanAge is about the duration of a sweep without work. The parts of such a sweep share a
// scan.
const scanAge = 10 * time.Second

// Store returns the DynamoDB table named by SORTIE_TABLE. With SORTIE_PLAIN_ITEMS=true it
// stores new records as plain JSON.
func Store(p *process.Process) *dynamo.Store {
	plain, err := strconv.ParseBool(p.Option("SORTIE_PLAIN_ITEMS", "false"))
	if err != nil {
		p.Check(errors.New("SORTIE_PLAIN_ITEMS: want true or false"))
	}
	store, err := dynamo.Open(p.AWS(), dynamo.Config{
		Table: p.Need("SORTIE_TABLE"), Clock: p.Clock(), PlainItems: plain, TTLGrace: ttlGrace, ScanAge: scanAge,
	})
	p.Check(err)
	return store
}

// Executions returns the executions of the state machine whose ARN is SORTIE_STATE_MACHINE.
func Executions(p *process.Process) port.Executions {
	executions, err := stepfunctions.New(p.AWS(), p.Need("SORTIE_STATE_MACHINE"))
	p.Check(err)
	return executions
}

// Signer returns the KMS keys of SORTIE_KEYS (ids or ARNs). The first key signs.
func Signer(p *process.Process) port.Signer {
	signer, err := kms.New(p.AWS(), p.NeedList("SORTIE_KEYS")...)
	p.Check(err)
	return signer
}
