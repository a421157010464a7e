// Package store makes the Store of a deployed function: the DynamoDB table.
package store

import (
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/lambdakit/process"
	"github.com/sortie-dev/sortie/shared/port"
)

// New reads SORTIE_TABLE.
func New(p *process.Process) port.Store {
	store, err := dynamo.Open(p.AWS(), dynamo.Config{Table: p.Need("SORTIE_TABLE"), Clock: p.Clock()})
	p.Check(err)
	return store
}
