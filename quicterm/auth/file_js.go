package auth

const openAtOnce = 0 // a browser has no files
