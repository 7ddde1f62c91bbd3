"""Recurrent encoder and decoder with attention and input feeding (Luong et al. 2015)."""
