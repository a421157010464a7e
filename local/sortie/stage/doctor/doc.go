// Package doctor checks the prerequisites of a stage on AWS, in the order of its setup. For
// each part that is not ready it reports the next step.
//
//	cdk.json ──cdk synth──► template ──plan.Of──► Plan ─┐
//	AWS, Fly, the buckets, DNS ────────────────────────┴──Run──► a Finding for each part
//
// The Plan is derived from the template: a secret, an app, a bucket, a mail address or a domain
// that is not in the template is not checked. Run changes nothing. Each check has its own time
// limit, and a failed check does not stop the next one. No Finding contains the value of a
// secret.
package doctor
