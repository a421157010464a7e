// The report program measures parts of the report of a release, and writes REPORT.md from the
// results of all parts.
//
//	go run ./local/proof/report [-only PART,PART] [-folder FOLDER]    measure and write
//	go run ./local/proof/report -page                                 write the page again
//	go run ./local/proof/report -list                                 name the parts
//	go run ./local/proof/report compare OLD NEW                       name what became worse
//
// Each part keeps its result in FOLDER/results/PART.json, so parts can be measured on different
// days; the page states the commit and the date of each. A part that fails keeps its earlier
// result, and the program exits with 1 after the others.
//
// compare takes two folders of results. It exits with 1 if a figure became worse by more than
// the noise that its part states.
package main
