// Package stage operates a stage on AWS: the check of what a deployment would remove, the
// restoration of its table, the deletion of its data, and its drain.
//
//	infra/.cdk/out ──Removals──► words that the operator must give
//	table ──Restore──► restored table ──cdk.json──► the next deployment uses it
//	buckets ──Empty──► a stack that CloudFormation can delete
//	export, tasks ──Drain──► no new runs
//
// Every operation may be repeated, and then continues where the previous one ended.
package stage
