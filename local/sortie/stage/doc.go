// Package stage operates a stage on AWS: what a deployment would take away from it,
// the restoration of its table, the end of its data, and its drain.
//
//	infra/.cdk/out ──Removals──► words that the operator must give
//	table ──Restore──► restored table ──cdk.json──► the next deployment uses it
//	buckets ──Empty──► a stack that CloudFormation can delete
//	export, tasks ──Drain──► no new runs
//
// Every operation may be repeated and continues where the one before ended.
package stage
