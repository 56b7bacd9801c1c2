package main

// defects are realistic mistakes.
var defects = []defect{}
