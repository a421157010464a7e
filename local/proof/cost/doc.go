// Package cost says what a deployed Sortie is billed for, and what that costs.
//
//	functions ──► Proxy ──► LocalStack      requests, write and read units
//	                          │
//	      histories, logs ◄───┘             transitions, Lambda's time
//
// Usage is what was counted from the records of the calls, Prices what AWS asks
// for it, with their date; a Bill is both, item by item. "make cost" counts on
// the stack that is deployed in LocalStack and writes testdata/measured.json;
// README.md is generated from that file, and a test compares it with the goals.
//
// What a laptop cannot tell is assumed, and stands in Assumptions. The package
// knows no free tier, no discount, no tax, and not the price of the machines
// that workers run on: those are the runner's.
package cost
