package bayes
